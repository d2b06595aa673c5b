"""Classification of process exits: crashed by itself, killed from outside, or out of memory."""

from __future__ import annotations

import signal

from dse.core.metric import FailureKind

_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
"""Signals that users, schedulers and the kernel send.

A crash of the program itself raises SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL or others.
"""

_SHELL = 128
"""A shell whose command was ended by signal n exits with 128 + n (POSIX, Shell Command Language)"""

_FORWARDED = (signal.SIGKILL, signal.SIGTERM)
"""Signals that a parent process may report as exit status when a child was killed from outside."""


def kind_of_death(number: int, *, short: bool = False) -> FailureKind:
    """Classify a process's end by a signal: out of memory, crashed or lost.

    Args:
        number: the signal number.
        short: whether the kernel's out-of-memory killer ended a process in the meantime.
    """
    if number == signal.SIGKILL and short:
        return "memory"
    return "lost" if number in _OUTSIDE else "crashed"


def describe_death(number: int, *, short: bool = False) -> str:
    """Return the signal's name; for SIGKILL, also whether memory was or may have been short.

    Args:
        number: the signal number.
        short: whether the kernel's out-of-memory killer ended a process in the meantime.
    """
    if number != signal.SIGKILL:
        return signal_name(number)
    return "SIGKILL: the kernel was short of memory" if short else "SIGKILL; was memory short?"


def forwarded_signal(status: int) -> int:
    """Return the signal encoded in an exit status of 128 + signal; 0 if it encodes none.

    Only SIGKILL and SIGTERM are recognized.
    """
    return status - _SHELL if status - _SHELL in _FORWARDED else 0


def signal_name(number: int) -> str:
    """Return the signal's name, such as ``SIGTERM``, or ``signal 50`` if it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
