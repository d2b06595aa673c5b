"""Commercial devices: data sheets, measured calibrations, and roofline models of their kernels."""
