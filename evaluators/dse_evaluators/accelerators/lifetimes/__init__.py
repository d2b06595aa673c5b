"""Cost model of training with activations in SRAM, eDRAM with finite retention, or DRAM."""
