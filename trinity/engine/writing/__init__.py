"""Rows into sinks: conversion to storage form, and the tasks that write."""
