"""Box decomposition of the objective space that a front does not dominate."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats

Box = tuple[tuple[float, ...], tuple[float, ...]]
"""Lower and upper corner of a box."""


def open_boxes(
    front: Floats,  # (n, m), losses
    reference: Floats,  # (m,)
) -> tuple[Floats, Floats]:
    """Return disjoint boxes that cover the non-dominated space up to the reference point.

    Returns:
        Lower and upper corners, each (boxes, m); lower ones may be minus infinity.

    Source:
        A sweep along the last objective, as in Lacour, Klamroth, Fonseca: A Box Decomposition
        Algorithm to Compute the Hypervolume Indicator, 2017: a box ends where a new member of the
        front cuts the box's cross section.
    """
    inside = front[(front < reference).all(axis=1)]
    boxes = _swept([tuple(row) for row in inside.tolist()], tuple(reference.tolist()))
    lower = np.array([box[0] for box in boxes]).reshape(-1, len(reference))
    upper = np.array([box[1] for box in boxes]).reshape(-1, len(reference))
    return lower, upper


def _swept(members: list[tuple[float, ...]], reference: tuple[float, ...]) -> list[Box]:
    if len(reference) == 1:
        top = min([member[0] for member in members], default=reference[0])
        return [((-np.inf,), (min(top, reference[0]),))]
    if len(reference) == 2:
        return _steps(members, reference)
    members = sorted(members, key=lambda member: member[-1])
    inner = reference[:-1]
    begun = dict.fromkeys(_swept([], inner), -np.inf)
    done: list[Box] = []
    shadow: list[tuple[float, ...]] = []
    for member in members:
        height, flat = member[-1], member[:-1]
        if any(all(a <= b for a, b in zip(old, flat, strict=True)) for old in shadow):
            continue
        shadow = [old for old in shadow if not all(a <= b for a, b in zip(flat, old, strict=True))]
        shadow.append(flat)
        now = set(_swept(shadow, inner))
        for box in [box for box in begun if box not in now]:
            start = begun.pop(box)
            if start < height:
                done.append((box[0] + (start,), box[1] + (height,)))
        for box in sorted(now - begun.keys()):
            begun[box] = height
    done += [(box[0] + (start,), box[1] + (reference[-1],)) for box, start in begun.items()]
    return done


def _steps(members: list[tuple[float, ...]], reference: tuple[float, ...]) -> list[Box]:
    """Return the non-dominated boxes of two objectives, as columns from left to right.

    Each column lies between neighbouring members of the front along the first objective; its height
    is the second objective of the member to its left, or of the reference point for the first
    column.
    """
    boxes: list[Box] = []
    left, height = -np.inf, reference[1]
    for first, second in sorted(members):
        if second >= height:
            continue
        if first > left:
            boxes.append(((left, -np.inf), (first, height)))
        left, height = first, second
    boxes.append(((left, -np.inf), (reference[0], height)))
    return boxes
