"""Devices that one can buy: data sheets, what they made of them, and kernels on them."""
