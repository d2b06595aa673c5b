"""Keys, ciphertexts and single operations of SEAL's BFV, by its binding in tenseal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from typing import Any

from dse.errors import InfeasibleError


@dataclass(frozen=True, slots=True, kw_only=True)
class BfvParameters:
    """Encryption parameters of SEAL; data primes and the key-switching prime have one width."""

    ring: int
    data_primes: int
    prime_bits: int
    plain_bits: int


_FRACTION_BITS = 6
"""Budgets are measured to 1/64 of a bit."""


class SealSession:
    """Encryption session of SEAL: one key pair with its rotation keys.

    Args:
        parameters: encryption parameters, which SEAL checks against 128-bit security.
        rotations: rotations of rows, in slots to the left.
        swap: whether rows are exchanged.

    Raises:
        InfeasibleError: SEAL refuses the parameters.
    """

    def __init__(self, parameters: BfvParameters, rotations: Sequence[int], *, swap: bool) -> None:
        from tenseal import sealapi

        self.api: Any = sealapi
        self.ring = parameters.ring
        context, self.plain_modulus = _make_context(parameters)
        keys = sealapi.KeyGenerator(context)
        public = sealapi.PublicKey()
        keys.create_public_key(public)
        self.galois = sealapi.GaloisKeys()
        elements = [pow(3, turn % (self.ring // 2), 2 * self.ring) for turn in rotations]
        elements += [2 * self.ring - 1] if swap else []
        if elements:
            keys.create_galois_keys(elements, self.galois)
        self.encryptor = sealapi.Encryptor(context, public)
        self.decryptor = sealapi.Decryptor(context, keys.secret_key())
        self.evaluator = sealapi.Evaluator(context)
        self.encoder = sealapi.BatchEncoder(context)
        self._level = context.first_parms_id()

    def encrypt(self, slots: Sequence[int]) -> Any:
        """Encrypt the integers of all slots."""
        ciphertext = self.api.Ciphertext()
        self.encryptor.encrypt(self.encode(slots), ciphertext)
        return ciphertext

    def encode(self, slots: Sequence[int], *, in_ntt: bool = False) -> Any:
        """Encode integers as a plaintext, transformed if ``in_ntt``."""
        plaintext = self.api.Plaintext()
        self.encoder.encode(slots, plaintext)
        if in_ntt:
            self.evaluator.transform_to_ntt_inplace(plaintext, self._level)
        return plaintext

    def rotate(self, ciphertext: Any, turn: int, *, swap: bool = False) -> Any:
        """Rotate both rows to the left, then exchange them if ``swap``."""
        turned = ciphertext
        if turn % (self.ring // 2):
            turned = self.api.Ciphertext()
            step = turn % (self.ring // 2)
            self.evaluator.rotate_rows(ciphertext, step, self.galois, turned)
        if not swap:
            return turned
        exchanged = self.api.Ciphertext()
        self.evaluator.rotate_columns(turned, self.galois, exchanged)
        return exchanged

    def multiply(self, ciphertext: Any, plaintext: Any) -> Any:
        product = self.api.Ciphertext()
        self.evaluator.multiply_plain(ciphertext, plaintext, product)
        return product

    def add(self, total: Any, term: Any) -> None:
        """Add a ciphertext to another in place."""
        self.evaluator.add_inplace(total, term)

    def to_ntt(self, ciphertext: Any) -> Any:
        transformed = self.api.Ciphertext()
        self.evaluator.transform_to_ntt(ciphertext, transformed)
        return transformed

    def from_ntt(self, ciphertext: Any) -> Any:
        transformed = self.api.Ciphertext()
        self.evaluator.transform_from_ntt(ciphertext, transformed)
        return transformed

    def budget(self, ciphertext: Any) -> int:
        """Return the bits of noise budget that are left; 0 if decryption may be wrong."""
        return int(self.decryptor.invariant_noise_budget(ciphertext))

    def measure_budget(self, ciphertext: Any) -> float:
        """Return the noise budget to a fraction of a bit, or SEAL's whole bits if few are left.

        A product with a whole number c makes the noise exactly c times larger. The c at which
        SEAL's reading falls by a bit states the part of a bit that the reading leaves out.
        """
        read = self.budget(ciphertext)
        steps = 1 << min(max(read - 1, 0), _FRACTION_BITS)

        def falls(count: int) -> bool:
            product = self.multiply(ciphertext, self.api.Plaintext(f"{count:X}"))
            return self.budget(product) < read - (steps.bit_length() - 1)

        low, high = steps, 2 * steps  # the reading has fallen by a bit more at 2 * steps
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if falls(middle) else (middle, high)
        return read + log2((low + high) / 2 / steps) if steps > 1 else float(read)

    def decrypt(self, ciphertext: Any) -> list[int]:
        """Return the signed integers of all slots."""
        plaintext = self.api.Plaintext()
        self.decryptor.decrypt(ciphertext, plaintext)
        slots: list[int] = self.encoder.decode_int64(plaintext)
        return slots


def _make_context(parameters: BfvParameters) -> tuple[Any, int]:
    """Return SEAL's context, and the plaintext modulus.

    Raises:
        InfeasibleError: SEAL refuses the parameters.
    """
    from tenseal import sealapi

    asked = sealapi.EncryptionParameters(sealapi.SCHEME_TYPE.BFV)
    widths = [parameters.prime_bits] * (parameters.data_primes + 1)
    try:
        asked.set_poly_modulus_degree(parameters.ring)
        asked.set_coeff_modulus(sealapi.CoeffModulus.Create(parameters.ring, widths))
        plain = sealapi.PlainModulus.Batching(parameters.ring, parameters.plain_bits)
        asked.set_plain_modulus(plain)
        context = sealapi.SEALContext(asked, True, sealapi.SEC_LEVEL_TYPE.TC128)  # noqa: FBT003
    except (ValueError, RuntimeError) as error:
        raise InfeasibleError(f"SEAL refuses the parameters: {error}") from error
    if not context.parameters_set():
        raise InfeasibleError(f"SEAL refuses the parameters: {context.parameters_error_message()}")
    return context, int(plain.value())
