"""What a disk gives to large sequential reads past the page cache, and forgetting that cache."""
import concurrent.futures
import mmap
import os
import threading
import time

import measured_run

# Bytes of a read, reads under way: which of them a disk likes best differs, and the best counts.
_WAYS = ((4 << 20, 8), (1 << 20, 32))


def drop_page_cache():
    """Raises OSError where that is not permitted."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3\n")


def sequential_bytes_per_s(path, total):
    """Reads `total` bytes from the file's beginning, or all of a shorter one, O_DIRECT, as fio does
    with --direct=1 --rw=read: --bs=4M --iodepth=8 or --bs=1M --iodepth=32, whichever is faster."""
    total = min(total, os.path.getsize(path))
    return max(_bytes_per_s(path, total, block, depth) for block, depth in _WAYS)


def _bytes_per_s(path, total, block, depth):
    blocks = total // block
    if blocks < depth:
        raise measured_run.RunFailed(f"{path}: {total} bytes are too few to time the disk with")
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    numbers, taking = iter(range(blocks)), threading.Lock()

    def read_blocks(buffer):
        while True:
            with taking:
                number = next(numbers, None)
            if number is None:
                return
            if os.preadv(file, [buffer], number * block) != block:
                raise measured_run.RunFailed(f"{path}: short read at {number * block}")

    try:
        buffers = [mmap.mmap(-1, block) for _ in range(depth)]  # aligned to pages
        with concurrent.futures.ThreadPoolExecutor(depth) as pool:
            start = time.monotonic()
            for _ in pool.map(read_blocks, buffers):
                pass
            return blocks * block / (time.monotonic() - start)
    finally:
        os.close(file)
