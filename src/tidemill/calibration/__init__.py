"""What the operators of this engine cost on this machine, measured: ``tidemill calibrate``."""
