/* Kills a program right before its n-th storage operation, or copies the folder before each (LD_PRELOAD).
 *
 * Counted are the calls below that touch a path under $CRASH_ROOT, in every process that shares $CRASH_CONTROL
 * (a small file, mapped by all of them): open for writing or creating, fopen for writing, write and its kin,
 * rename, link, symlink, unlink, rmdir, mkdir, fsync, ftruncate. A run of writes to one file with no other
 * operation between counts once, at its first write: what is synced or named next is what a reader can see.
 * One operation runs at a time, so a copy is what a SIGKILL at that place leaves on the disk.
 *
 *   CRASH_ROOT     absolute folder to watch
 *   CRASH_CONTROL  file of sizeof(struct control) zero bytes, outside the folder
 *   CRASH_AT       number of the operation that does not happen; 0 only counts
 *   CRASH_COPIES   folder that gets a copy "number" of the watched one before each operation, and for a write also
 *                  "number.torn", in which its first half has happened
 *   CRASH_MATCH    counting begins at the first operation whose line "name path" matches this glob
 *   CRASH_TRACE    file that gets a line "number name path" per operation
 *
 * The kill: a flag in the control file stops all other processes at their next operation, then every process of
 * this session is killed (a program started by the harness leads its own session, whatever groups it makes).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

struct control {
  atomic_int lock;
  atomic_int begun;
  atomic_int killed;
  int64_t count;
  uint64_t last_write; /* hash of the file of the run of writes that is going on, 0 for none */
};

static struct control *control;
static char root[PATH_MAX], trace_path[PATH_MAX], copies[PATH_MAX];
static const char *match;
static int64_t crash_at;
static __thread int held; /* a call that makes another one counts once */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int raw_open(const char *path, int flags) { return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0644); }

__attribute__((constructor)) static void begin(void) {
  const char *folder = getenv("CRASH_ROOT"), *file = getenv("CRASH_CONTROL");
  if (!folder || !file || !realpath(folder, root)) return;
  const char *at = getenv("CRASH_AT"), *into = getenv("CRASH_COPIES"), *trace = getenv("CRASH_TRACE");
  crash_at = at ? atoll(at) : 0;
  match = getenv("CRASH_MATCH");
  if (into) snprintf(copies, sizeof copies, "%s", into);
  if (trace) snprintf(trace_path, sizeof trace_path, "%s", trace);
  int fd = raw_open(file, O_RDWR);
  if (fd < 0) return;
  void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  if (mapped != MAP_FAILED) control = mapped;
}

/* The path without links in its folders, of dir/path; a name that does not exist yet is fine. */
static int resolve(int dir, const char *path, char *out) {
  char joined[2 * PATH_MAX], base[PATH_MAX], link[64];
  if (!path) return 0;
  if (path[0] == '/') {
    snprintf(joined, sizeof joined, "%s", path);
  } else {
    snprintf(link, sizeof link, dir == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", dir);
    ssize_t n = readlink(link, base, sizeof base - 1);
    if (n < 0) return 0;
    base[n] = 0;
    snprintf(joined, sizeof joined, "%s/%s", base, path);
  }
  char *slash = strrchr(joined, '/');
  while (slash > joined && slash[1] == 0) { *slash = 0; slash = strrchr(joined, '/'); }
  if (slash == joined) { snprintf(out, PATH_MAX, "%.4000s", joined); return 1; }
  *slash = 0;
  char parent[PATH_MAX];
  if (!realpath(joined, parent)) snprintf(parent, sizeof parent, "%.*s", PATH_MAX - 1, joined);
  snprintf(out, PATH_MAX, "%.2000s/%.2000s", parent, slash + 1);
  return 1;
}

static int below(const char *path) {
  size_t n = strlen(root);
  return strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == 0);
}

static uint64_t hash(const char *text) {
  uint64_t h = 14695981039346656037ull;
  for (; *text; text++) h = (h ^ (unsigned char)*text) * 1099511628211ull;
  return h | 1;
}

static void kill_session(void) {
  pid_t me = getpid(), session = getsid(0);
  for (int round = 0; round < 3; round++) {
    DIR *proc = opendir("/proc");
    if (!proc) break;
    for (struct dirent *entry; (entry = readdir(proc));) {
      pid_t pid = atoi(entry->d_name);
      if (pid > 0 && pid != me && getsid(pid) == session) kill(pid, SIGKILL);
    }
    closedir(proc);
  }
  kill(me, SIGKILL);
  for (;;) pause();
}

static void trace(int64_t number, const char *line) {
  if (!trace_path[0]) return;
  int fd = raw_open(trace_path, O_WRONLY | O_CREAT | O_APPEND);
  char text[PATH_MAX + 64];
  int n = snprintf(text, sizeof text, "%lld %s\n", (long long)number, line);
  syscall(SYS_write, fd, text, n > (int)sizeof text ? (int)sizeof text : n);
  syscall(SYS_close, fd);
}

static void enter(void) {
  int free_ = 0;
  while (!atomic_compare_exchange_weak(&control->lock, &free_, 1)) {
    free_ = 0;
    if (atomic_load(&control->killed)) for (;;) pause();
    usleep(20);
  }
  if (atomic_load(&control->killed)) for (;;) pause();
}

static void leave(int entered) {
  if (!entered) return;
  held = 0;
  atomic_store(&control->lock, 0);
}

/* What a write is about to do; nothing of it is known of a copy from file to file. */
struct half { const char *data; size_t size; off_t at; };

static void copy(const char *from, const char *to) {
  char *words[] = {"cp", "-a", (char *)from, (char *)to, NULL}, *nothing[] = {NULL};
  pid_t pid;
  int status = -1;
  if (posix_spawn(&pid, "/bin/cp", NULL, NULL, words, nothing) == 0)
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  if (status == 0) return;
  fprintf(stderr, "crash_shim: cannot copy %s to %s\n", from, to);
  abort();
}

static void copy_root(int64_t number, const char *path, const struct half *half) {
  char target[2 * PATH_MAX], file[4 * PATH_MAX];
  snprintf(target, sizeof target, "%s/%lld", copies, (long long)number);
  copy(root, target);
  if (!half || !half->data) return;
  snprintf(target, sizeof target, "%s/%lld.torn", copies, (long long)number);
  copy(root, target);
  snprintf(file, sizeof file, "%s%s", target, path + strlen(root));
  int fd = raw_open(file, O_WRONLY);
  if (fd >= 0) { /* a file that was removed while open has no name to be found by */
    syscall(SYS_pwrite64, fd, half->data, half->size / 2, half->at);
    syscall(SYS_close, fd);
  }
}

/* Counts the operation, and holds the others back until leave() when it returns 1. */
static int operation(const char *name, const char *path, const struct half *half) {
  char line[PATH_MAX + 32];
  int saved = errno;
  if (held) return 0;
  snprintf(line, sizeof line, "%s %s", name, path);
  enter();
  held = 1;
  uint64_t file = half ? hash(path) : 0;
  int merged = half && control->last_write == file;
  control->last_write = file;
  int64_t number = 0;
  if (!atomic_load(&control->begun) && (!match || !match[0] || fnmatch(match, line, 0) == 0))
    atomic_store(&control->begun, 1);
  if (atomic_load(&control->begun) && !merged) {
    number = ++control->count;
    trace(number, line);
  }
  if (number && number == crash_at) {
    atomic_store(&control->killed, 1);
    kill_session();
  }
  if (number && copies[0]) copy_root(number, path, half);
  errno = saved;
  return 1;
}

static int on_path(const char *name, int dir, const char *path) {
  char full[PATH_MAX];
  return control && resolve(dir, path, full) && below(full) && operation(name, full, NULL);
}

static int fd_path(int fd, char *out) {
  char link[64];
  int saved = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, out, PATH_MAX - 1);
  errno = saved;
  if (n <= 0 || out[0] != '/') return 0;
  out[n] = 0;
  return below(out);
}

static int on_fd(const char *name, int fd) {
  char full[PATH_MAX];
  return control && fd_path(fd, full) && operation(name, full, NULL);
}

/* at: where the bytes go; -1: where the file stands. */
static int on_write(int fd, const void *data, size_t size, off_t at) {
  char full[PATH_MAX];
  if (!control || !fd_path(fd, full)) return 0;
  int saved = errno;
  if (at < 0) at = lseek(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
  errno = saved;
  struct half half = {data, size, at < 0 ? 0 : at};
  return operation("write", full, &half);
}

#define MODE(flags) \
  mode_t mode = 0; \
  if ((flags) & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
#define CHANGES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))
#define UNDER(counted, call) \
  int entered = (counted); \
  __typeof__(call) result = (call); \
  leave(entered); \
  return result;

int open(const char *path, int flags, ...) {
  MODE(flags) UNDER(CHANGES(flags) && on_path("open", AT_FDCWD, path), REAL(open)(path, flags, mode))
}
int open64(const char *path, int flags, ...) {
  MODE(flags) UNDER(CHANGES(flags) && on_path("open", AT_FDCWD, path), REAL(open64)(path, flags, mode))
}
int openat(int dir, const char *path, int flags, ...) {
  MODE(flags) UNDER(CHANGES(flags) && on_path("open", dir, path), REAL(openat)(dir, path, flags, mode))
}
int openat64(int dir, const char *path, int flags, ...) {
  MODE(flags) UNDER(CHANGES(flags) && on_path("open", dir, path), REAL(openat64)(dir, path, flags, mode))
}
int creat(const char *path, mode_t mode) { UNDER(on_path("open", AT_FDCWD, path), REAL(creat)(path, mode)) }
int creat64(const char *path, mode_t mode) { UNDER(on_path("open", AT_FDCWD, path), REAL(creat64)(path, mode)) }
FILE *fopen(const char *path, const char *mode) {
  UNDER(strpbrk(mode, "wa+") && on_path("open", AT_FDCWD, path), REAL(fopen)(path, mode))
}
FILE *fopen64(const char *path, const char *mode) {
  UNDER(strpbrk(mode, "wa+") && on_path("open", AT_FDCWD, path), REAL(fopen64)(path, mode))
}
ssize_t write(int fd, const void *data, size_t size) {
  UNDER(on_write(fd, data, size, -1), REAL(write)(fd, data, size))
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  UNDER(on_write(fd, data, size, at), REAL(pwrite)(fd, data, size, at))
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  UNDER(on_write(fd, data, size, at), REAL(pwrite64)(fd, data, size, at))
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
  UNDER(on_write(fd, parts[0].iov_base, parts[0].iov_len, -1), REAL(writev)(fd, parts, count))
}
ssize_t sendfile64(int to, int from, off64_t *at, size_t size) {
  typedef ssize_t (*send)(int, int, off64_t *, size_t);
  UNDER(on_write(to, NULL, 0, 0), ((send)dlsym(RTLD_NEXT, "sendfile64"))(to, from, at, size))
}
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags) {
  UNDER(on_write(to, NULL, 0, 0), REAL(copy_file_range)(from, a, to, b, size, flags))
}
int rename(const char *from, const char *to) { UNDER(on_path("rename", AT_FDCWD, to), REAL(rename)(from, to)) }
int renameat(int d1, const char *from, int d2, const char *to) {
  UNDER(on_path("rename", d2, to), REAL(renameat)(d1, from, d2, to))
}
int renameat2(int d1, const char *from, int d2, const char *to, unsigned flags) {
  UNDER(on_path("rename", d2, to), REAL(renameat2)(d1, from, d2, to, flags))
}
int link(const char *from, const char *to) { UNDER(on_path("link", AT_FDCWD, to), REAL(link)(from, to)) }
int linkat(int d1, const char *from, int d2, const char *to, int flags) {
  UNDER(on_path("link", d2, to), REAL(linkat)(d1, from, d2, to, flags))
}
int symlink(const char *from, const char *to) { UNDER(on_path("symlink", AT_FDCWD, to), REAL(symlink)(from, to)) }
int unlink(const char *path) { UNDER(on_path("unlink", AT_FDCWD, path), REAL(unlink)(path)) }
int unlinkat(int dir, const char *path, int flags) {
  UNDER(on_path("unlink", dir, path), REAL(unlinkat)(dir, path, flags))
}
int rmdir(const char *path) { UNDER(on_path("rmdir", AT_FDCWD, path), REAL(rmdir)(path)) }
int remove(const char *path) { UNDER(on_path("unlink", AT_FDCWD, path), REAL(remove)(path)) }
int mkdir(const char *path, mode_t mode) { UNDER(on_path("mkdir", AT_FDCWD, path), REAL(mkdir)(path, mode)) }
int mkdirat(int dir, const char *path, mode_t mode) { UNDER(on_path("mkdir", dir, path), REAL(mkdirat)(dir, path, mode)) }
int fsync(int fd) { UNDER(on_fd("fsync", fd), REAL(fsync)(fd)) }
int fdatasync(int fd) { UNDER(on_fd("fsync", fd), REAL(fdatasync)(fd)) }
int ftruncate(int fd, off_t size) { UNDER(on_fd("truncate", fd), REAL(ftruncate)(fd, size)) }
int ftruncate64(int fd, off64_t size) { UNDER(on_fd("truncate", fd), REAL(ftruncate64)(fd, size)) }
