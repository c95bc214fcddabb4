"""Ways to a server that a test breaks and mends. Knows nothing of what crosses them, but for what a cloud of ends says."""
import re
import socket
import threading
import time


class Link:
    """A way through this process to a server, which can be cut, held up and opened again."""

    def __init__(self, port):
        self.port = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.flows = threading.Event()
        self.flows.set()
        self.is_cut = False
        self.open = set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            try:
                if self.is_cut:
                    raise OSError
                far = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                near.close()
                continue
            self.open |= {near, far}
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def carry(self, source, target):
        try:
            while data := source.recv(4096):
                self.flows.wait()
                target.sendall(self.carried(data, target))
        except OSError:
            pass
        for one in (source, target):
            self.open.discard(one)
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def carried(self, data, _):
        return data

    def cut(self):
        self.is_cut = True
        for one in list(self.open):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.flows.set()

    def hang(self):
        self.flows.clear()

    def heal(self):
        self.is_cut = False
        self.flows.set()

    def close(self):
        self.listener.close()
        self.cut()


class StuckLink(Link):
    """One with which the cloud may seem to stand still: it says as often as a cloud does that it lives, and gives no more tokens."""
    TOKENS = re.compile(rb"(?:^|\r\n)([0-9a-f]+\r\n\[\d)")  # a chunk of them
    ALIVE = b"3\r\n[]\n\r\n"

    def __init__(self, port):
        self.is_stuck = False
        super().__init__(port)

    def carried(self, data, target):
        tokens = self.TOKENS.search(data) if self.is_stuck else None
        if tokens:
            target.sendall(data[:tokens.start(1)])
        while tokens and self.is_stuck:
            target.sendall(self.ALIVE)
            time.sleep(0.4)
        return data[tokens.start(1):] if tokens else data
