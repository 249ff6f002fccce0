//! A headless Chromium over its debugging pipe: just enough of the DevTools protocol to look at one page.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use command_fds::{CommandFdExt, FdMapping};
use serde_json::{Value, json};

/// A browser with one blank page. Ends with the value.
pub struct Browser {
    child: Child,
    to: std::io::PipeWriter,
    from: BufReader<std::io::PipeReader>,
    session: String,
    next: u64,
    /// Everything the page said unasked: console messages, errors, requests.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts Debian's chromium.
    pub fn start() -> Self {
        let profile = tempfile::tempdir().expect("a folder for the profile");
        let (its_input, to) = std::io::pipe().expect("a pipe");
        let (from, its_output) = std::io::pipe().expect("a pipe");
        let mut command = Command::new("chromium");
        command.args([
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-first-run",
            "--disable-gpu",
            "--hide-scrollbars",
        ]);
        command.args(["--disable-background-networking", "--disable-dev-shm-usage"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        if rustix::process::getuid().is_root() {
            // Chromium's own sandbox will not run as root; the page is ours.
            command.arg("--no-sandbox");
        }
        let mapped = |fd: OwnedFd, child_fd| FdMapping { parent_fd: fd, child_fd };
        command.fd_mappings(vec![mapped(its_input.into(), 3), mapped(its_output.into(), 4)]).expect("two mappings");
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = spawned.expect("chromium runs: apt-get install chromium");
        drop(command);
        let mut browser = Self {
            child,
            to,
            from: BufReader::new(from),
            session: String::new(),
            next: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Opens a page at that size and scheme (`light` or `dark`), and waits until it has loaded.
    pub fn open(&mut self, page: &Path, (width, height): (u32, u32), scheme: &str) {
        let mobile = width < 600;
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
        self.call("Page.navigate", json!({ "url": format!("file://{}", page.display()) }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            self.read();
        }
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
    }

    /// Shows the page as it would be printed.
    pub fn print(&mut self) {
        self.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    }

    /// The value of a JavaScript expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Presses a key: `Tab`, `Enter`.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            _ => (9, ""),
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// A PNG of what is seen.
    pub fn screenshot(&mut self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let data = shot["data"].as_str().expect("a picture");
        base64::engine::general_purpose::STANDARD.decode(data).expect("base64")
    }

    /// Console messages, uncaught exceptions, policy violations and requests, but those for the page itself.
    pub fn complaints(&mut self) -> Vec<String> {
        // What was said before this call has been read when it is answered.
        self.call("Runtime.evaluate", json!({ "expression": "0" }));
        let told = |event: &Value| match event["method"].as_str() {
            Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded") => Some(event.to_string()),
            Some("Network.requestWillBeSent") => {
                let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
                let own = url.starts_with("file:") && event["params"]["type"] == "Document";
                (!own && !url.starts_with("data:")).then(|| format!("request: {url}"))
            }
            _ => None,
        };
        self.events.iter().filter_map(told).collect()
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let answer = self.read();
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    /// The next message; an event is noted as well.
    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).expect("the browser talks");
        bytes.pop().expect("the browser is still there");
        let message: Value = serde_json::from_slice(&bytes).expect("JSON");
        if message["method"].is_string() {
            self.events.push(message.clone());
        }
        message
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
