"""Rows on their way into sinks: conversion to storage form, and the tasks that write."""
