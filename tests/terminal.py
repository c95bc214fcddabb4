"""What a program writes to a terminal that a test gave it."""
import os


def all_written(primary):
    """Until the program and all others have closed the other side; closes this one."""
    seen = b""
    try:
        while chunk := os.read(primary, 4096):
            seen += chunk
    except OSError:  # Linux says so that the other side is closed
        pass
    os.close(primary)
    return seen
