def test_patterns(session, zone):
    import random
    from tests.local.test_expressions import Beside, sample
    from tests.support.expressions import _READ, _WRITTEN, _DAYS_READ, Generator

    g = Generator(5)
    texts = []
    for _ in range(25):
        texts += [f"DATE_FORMAT({g.day(1)}, {g.draw.choice(_WRITTEN)})"]
        texts += [f"TO_DATE({g.draw.choice(_DAYS_READ)}, {g.draw.choice(_READ)})"]
        p = g.draw.choice(_READ)
        texts += [f"TO_TIMESTAMP(DATE_FORMAT({g.time()}, {p}), {p})"]
    d = Beside(session, zone, sample(40, 1, mild=True)).differing(list(dict.fromkeys(texts)), least=0.2)
    open("/tmp/lb/out4.txt", "a").write("\n".join(d) + f"\n{len(d)} {zone}\n")
