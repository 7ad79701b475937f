"""What questions about execution techniques have in common.

direct     every element knows its end            (time intervals; DIRECT)
negative   what goes is withdrawn by a message    (positive-negative; NT)
pattern    signs only where ends are not known    (update-pattern aware)
"""
