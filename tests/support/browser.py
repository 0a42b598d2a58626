"""A Chromium without a window, driven by its DevTools protocol over a pipe: no network, no packages.

https://chromedevtools.github.io/devtools-protocol/
"""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

ANSWER_SECONDS = 60


class Browser:
    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="attn-browser-")
        to_browser, self.out = os.pipe()
        self.inp, from_browser = os.pipe()
        # The browser reads from descriptor 3 and writes to 4; the shell puts the pipes there.
        command = [
            "sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh",
            program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--no-first-run", "--hide-scrollbars",
            f"--user-data-dir={self.folder}", "--remote-debugging-pipe", "about:blank",
        ]
        self.process = subprocess.Popen(command, pass_fds=(to_browser, from_browser),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.bytes = b""
        self.events = []
        self.last = 0
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        # Asked to end, it ends its helpers too, which else would still write into the folder.
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def read_message(self, until):
        while b"\0" not in self.bytes:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.inp], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.inp, 1 << 20)
            if not more:
                raise EOFError("the browser has ended")
            self.bytes += more
        text, self.bytes = self.bytes.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + ANSWER_SECONDS
        while True:
            answer = self.read_message(until)
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def load(self, path):
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        until = time.monotonic() + ANSWER_SECONDS
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.read_message(until))
        self.settle()

    def settle(self):
        """Until what has been done so far is drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout("
                      "() => requestAnimationFrame(() => setTimeout(done, 10)), 10)))")

    def point(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, x, y):
        self.point(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def tap(self, x, y):
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def press(self, key, code=0, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=code, **({"text": text} if text and kind == "keyDown" else {}))
        self.settle()

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.settle()

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.settle()
