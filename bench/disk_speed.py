"""What a disk gives to large sequential reads past the page cache, and forgetting that cache."""
import concurrent.futures
import ctypes
import mmap
import os
import threading
import time

import measured_run

# Bytes of a read, reads under way: which of them a disk likes best differs, and the best counts.
_WAYS = ((4 << 20, 8), (1 << 20, 32))
_HUGE_PAGE = 2 << 20


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


def copied_bytes_per_s(path, total):
    """The same of a file that is held in memory: what copying it takes, which processors do."""
    total = min(total, os.path.getsize(path))
    return max(_bytes_per_s(path, total, block, depth, os.O_RDONLY) for block, depth in _WAYS)


def _huge_buffer(size):
    """Aligned, in huge pages where the system gives them, and there before the first read: a read
    into small pages is hundreds of segments, and a virtual disk is several times as slow with it."""
    whole = mmap.mmap(-1, size + _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        whole.madvise(mmap.MADV_HUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(whole))
    start = -address % _HUGE_PAGE
    view = memoryview(whole)[start:start + size]
    for at in range(0, size, mmap.PAGESIZE):
        view[at] = 0
    return view


def _bytes_per_s(path, total, block, depth, flags=os.O_RDONLY | os.O_DIRECT):
    blocks = total // block
    if blocks < depth:
        raise measured_run.RunFailed(f"{path}: {total} bytes are too few to time the disk with")
    file = os.open(path, flags)
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
        buffers = [_huge_buffer(block) for _ in range(depth)]
        with concurrent.futures.ThreadPoolExecutor(depth) as pool:
            start = time.monotonic()
            for _ in pool.map(read_blocks, buffers):
                pass
            return blocks * block / (time.monotonic() - start)
    finally:
        os.close(file)
