"""A hub and a registry for tests: they speak as the real ones do, and misbehave as they are told.

Files lie behind a second server, as the real ones' do, on another port and so of another origin.
"""
import hashlib
import http.server
import json
import re
import threading

_PIECE = 4096


class Plan:
    """How the servers are to misbehave; each list is used up request by request."""

    def __init__(self):
        self.cuts = []            # bytes of a body after which the connection is closed
        self.statuses = []        # (status, headers) in place of the file's host's answer
        self.listing_statuses = []  # the same of the listing
        self.listing_text = None  # in place of the listing
        self.listed_bytes = {}    # path: size that the listing says
        self.listed_sha256 = {}   # path: checksum that it says; None: none
        self.sends = {}           # path: bytes that are sent in place of the file's
        self.no_ranges = False    # answers 200 with all of it
        self.wrong_range = None   # a Content-Range
        self.no_length = False
        self.etags = []           # one a request; the last one stays
        self.token = None         # that the hub asks for
        self.redirect = True      # to the files' host; an address: to there
        self.slow = 0.0           # seconds between two pieces
        self.redirect_loop = False


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        hub = self.server.hub
        with hub.lock:
            hub.requests.append((self.server.role, self.path, dict(self.headers)))
        if self.server.role == "files":
            self._file(hub)
        elif self.path.startswith("/api/models/"):
            self._listing(hub)
        elif "/manifests/" in self.path:
            self._manifest(hub)
        else:
            self._resolve(hub)

    def _answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _is_refused(self, plan):
        if plan.listing_statuses:
            status, headers = plan.listing_statuses.pop(0)
            self._answer(status, b"<html>no</html>", **headers)
            return True
        if plan.token and self.headers.get("Authorization") != f"Bearer {plan.token}":
            self._answer(401, b'{"error":"Invalid credentials"}')
            return True
        return False

    def _listing(self, hub):
        plan = hub.plan
        if self._is_refused(plan):
            return
        if plan.listing_text is not None:
            self._answer(200, plan.listing_text.encode())
            return
        repo = re.fullmatch(r"/api/models/(.+)/revision/main\?blobs=true", self.path)
        files = hub.repos.get(repo[1]) if repo else None
        if files is None:
            self._answer(404, b'{"error":"Repository not found"}')
            return
        siblings = [{"rfilename": "README.md", "size": 7, "blobId": "b"}]
        for path, data in files.items():
            entry = {"rfilename": path, "size": plan.listed_bytes.get(path, len(data)), "blobId": "b"}
            checksum = plan.listed_sha256.get(path, hashlib.sha256(data).hexdigest())
            if checksum is not None:
                entry["lfs"] = {"size": entry["size"], "sha256": checksum, "pointerSize": 134}
            siblings.append(entry)
        self._answer(200, json.dumps({"id": repo[1], "sha": "c0ffee", "siblings": siblings}).encode())

    def _manifest(self, hub):
        plan = hub.plan
        if self._is_refused(plan):
            return
        name = re.fullmatch(r"/v2/(.+)/manifests/(.+)", self.path)
        data = hub.models.get(f"{name[1]}:{name[2]}")
        if data is None:
            self._answer(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}')
            return
        digest = plan.listed_sha256.get(name[2], hashlib.sha256(data).hexdigest())
        layers = [{"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + 64 * "1", "size": 3},
                  {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + digest,
                   "size": plan.listed_bytes.get(name[2], len(data))}]
        self._answer(200, json.dumps({"schemaVersion": 2, "config": {}, "layers": layers}).encode())

    def _resolve(self, hub):
        plan = hub.plan
        if self._is_refused(plan):
            return
        found = re.fullmatch(r"/(.+?/.+?)/resolve/c0ffee/(.+)", self.path)
        blob = re.fullmatch(r"/v2/(.+)/blobs/sha256:(\w+)", self.path)
        if plan.redirect_loop:
            self._answer(302, Location=self.path)
        elif plan.redirect is not True:
            self._answer(302, Location=plan.redirect)
        elif found or blob:
            where = f"/{found[1]}/{found[2]}" if found else f"/{blob[1]}"
            self._answer(302 if found else 307, Location=f"{hub.files_address}{where}?signature=x")
        else:
            self._answer(404)

    def _data_of(self, hub):
        path = self.path.removeprefix("/").partition("?")[0]
        for repo, files in hub.repos.items():
            for name, data in files.items():
                if path == f"{repo}/{name}":
                    return hub.plan.sends.get(name, data)
        for name, data in hub.models.items():
            if path == name.partition(":")[0]:
                return hub.plan.sends.get(name, data)
        return None

    def _file(self, hub):
        plan = hub.plan
        if plan.statuses:
            status, headers = plan.statuses.pop(0)
            self._answer(status, b"busy", **headers)
            return
        data = self._data_of(hub)
        if data is None:
            self._answer(404)
            return
        etag = (plan.etags.pop(0) if len(plan.etags) > 1 else plan.etags[0]) if plan.etags else '"same"'
        start = 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        changed = self.headers.get("If-Range", etag) != etag
        if asked and not plan.no_ranges and not changed:
            start = int(asked[1])
            if start >= len(data):
                self._answer(416, Content_Range=f"bytes */{len(data)}")
                return
            self.send_response(206)
            self.send_header("Content-Range",
                             plan.wrong_range or f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("ETag", etag)
        if plan.no_length:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self._send(data[start:], plan)

    def _send(self, body, plan):
        end = plan.cuts.pop(0) if plan.cuts else len(body)
        try:
            for at in range(0, min(end, len(body)), _PIECE):
                self.wfile.write(body[at:min(at + _PIECE, end)])
                if plan.slow:
                    self.server.hub.stopping.wait(plan.slow)
        except OSError:
            return  # the client has gone
        if end < len(body):
            self.close_connection = True
            self.connection.close()


class ModelHub:
    """Two servers on this machine, until close()."""

    def __init__(self):
        self.repos = {}   # "owner/repo": {path: bytes}
        self.models = {}  # "library/name:tag": bytes
        self.plan = Plan()
        self.requests = []  # (server, path, headers)
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self._servers = []
        self.address = self._serve("hub")
        self.files_address = self._serve("files")

    def _serve(self, role):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        server.daemon_threads = True
        server.hub, server.role = self, role
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self._servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    def asked(self, role):
        """The requests of one of the servers: (path, headers)."""
        with self.lock:
            return [(path, headers) for server, path, headers in self.requests if server == role]

    def close(self):
        self.stopping.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()
