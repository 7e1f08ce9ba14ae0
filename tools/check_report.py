#!/usr/bin/python3
"""Opens reports in Chromium and checks what is visible.

  check_report.py THIMBLE [--runs RUN...] [--screenshots FOLDER]

Makes two tiny runs with the program THIMBLE and the pages of these and of the given runs. Opens each
page headless, light and dark, at desktop and phone size, and checks: nothing on the console, no
request except the page itself, the numbers of plan.json and summary.json in the plots, the tips shown
by pointer, touch and arrow keys, no overlapping texts, nothing wider than the window.
Needs Debian's chromium, chromium-driver and python3-selenium.
"""
import argparse
import base64
import json
import pathlib
import subprocess
import sys
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

WINDOWS = {"desk": (1280, 900), "phone": (390, 844)}
CATEGORIES = ["model", "gradients", "optimizer", "activations", "transient", "data"]

# Texts of one plot whose boxes overlap by more than a pixel each way.
OVERLAPS = """
const faults = [];
for (const plot of document.querySelectorAll('svg.plot')) {
  const boxes = [...plot.querySelectorAll('text')].filter((t) => t.textContent).map(
      (t) => [t.getBoundingClientRect(), t.textContent]).filter(([b]) => b.width > 0);
  for (let i = 0; i < boxes.length; ++i) {
    for (let j = i + 1; j < boxes.length; ++j) {
      const [a, b] = [boxes[i][0], boxes[j][0]];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 3) faults.push(boxes[i][1] + ' | ' + boxes[j][1]);
    }
  }
}
return faults;
"""

# Visible plots and texts that end outside the window.
OUTSIDE = """
return [...document.querySelectorAll('svg.plot, svg.plot text')].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.width > 0 && (box.right > innerWidth + 0.5 || box.left < -0.5);
}).map((e) => e.textContent.slice(0, 60));
"""


class Browser:
    def __init__(self, screenshots):
        options = Options()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.screenshots = screenshots
        self.faults = []
        self.where = ""

    def fault(self, text):
        self.faults.append(f"{self.where}: {text}")

    def expect(self, condition, text):
        if not condition:
            self.fault(text)

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def open(self, page, window, scheme):
        """Loads a page; checks what must hold for every page."""
        self.where = f"{page.name} {window} {scheme}"
        width, height = WINDOWS[window]
        phone = window == "phone"
        command = self.driver.execute_cdp_cmd
        command("Emulation.setDeviceMetricsOverride",
                {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone})
        command("Emulation.setTouchEmulationEnabled", {"enabled": phone})
        command("Emulation.setEmulatedMedia",
                {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.driver.get_log("browser"), self.driver.get_log("performance")
        self.driver.get(page.as_uri())
        for entry in self.driver.get_log("browser"):
            self.expect(entry["level"] not in ("WARNING", "SEVERE"), f"console: {entry['message']}")
        self.check_requests(page.as_uri())
        self.expect(self.js("return document.documentElement.scrollWidth") <= width,
                    "the page is wider than the window")
        for text in self.js(OUTSIDE):
            self.fault(f"ends outside the window: {text}")
        for texts in self.js(OVERLAPS):
            self.fault(f"texts overlap: {texts}")
        self.screenshot(page, window, scheme)

    def check_requests(self, own):
        urls = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.add(message["params"]["request"]["url"])
        self.expect(urls == {own}, f"requests: {urls}")

    def screenshot(self, page, window, scheme):
        if not self.screenshots:
            return
        size = self.js("const e = document.documentElement; return [e.clientWidth, e.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot",
                                              {"captureBeyondViewport": True, "clip": clip})
        name = page.parent.name if page.stem == "report" else page.stem
        path = self.screenshots / f"{name}_{window}_{scheme}.png"
        path.write_bytes(base64.b64decode(picture["data"]))

    def tip_over(self, selector, index, touch):
        """The text of the tip with the pointer or a touch on the index-th visible mark."""
        x, y = self.js("""
            const marks = [...document.querySelectorAll(arguments[0])].filter(
                (e) => e.getBoundingClientRect().width > 0);
            marks[arguments[1]].scrollIntoView({block: 'center'});
            const box = marks[arguments[1]].getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];""", selector, index)
        # Scrolling hides the tip; wait until it has ended.
        self.driver.execute_async_script("setTimeout(arguments[0], 60)")
        if touch:
            point = {"x": x, "y": y}
            for kind, points in (("touchStart", [point]), ("touchEnd", [])):
                self.driver.execute_cdp_cmd("Input.dispatchTouchEvent",
                                            {"type": kind, "touchPoints": points})
        else:
            self.driver.execute_cdp_cmd("Input.dispatchMouseEvent",
                                        {"type": "mouseMoved", "x": x, "y": y})
        return self.tip()

    def tip(self):
        shown = self.js("const t = document.getElementById('tip');"
                        "return t.hidden ? null : t.innerText")
        return shown or ""

    def check_tip_inside(self):
        right, bottom, width, height = self.js(
            "const b = document.getElementById('tip').getBoundingClientRect();"
            "return [b.right, b.bottom, innerWidth, innerHeight]")
        self.expect(right <= width and bottom <= height, "the tip ends outside the window")


def grouped(number):
    return f"{number:,}"


def check_report(browser, page, run):
    plan = json.loads((run / "plan.json").read_text())["plans"][0]
    summary = json.loads((run / "summary.json").read_text())
    for window in WINDOWS:
        for scheme in ("light", "dark"):
            browser.open(page, window, scheme)
            check_numbers(browser, plan, summary)
            check_hover(browser, plan, touch=window == "phone")
            check_keys(browser, plan)


def check_numbers(browser, plan, summary):
    text = browser.js("return document.body.innerText")
    for name in ("arena_bytes", "planned_peak_bytes"):
        browser.expect(grouped(summary[name]) in text, f"no {name}")
    for category in CATEGORIES + ["gaps"]:
        browser.expect(grouped(plan["categories"][category]) in text, f"no bytes of {category}")
    for name in ("command", "version"):  # older runs have none
        browser.expect(summary.get(name, "") in text, f"no {name}")
    labels = browser.js("""
        return [...document.querySelectorAll('svg.plot')].filter(
            (e) => e.getBoundingClientRect().width > 0).map((e) => e.getAttribute('aria-label'))""")
    peak = sum(plan["categories"][category] for category in CATEGORIES)
    browser.expect(any(grouped(peak) in label for label in labels), "no peak in the memory plot")
    browser.expect(len(labels) >= 6, f"only {len(labels)} plots")


def check_hover(browser, plan, touch):
    peak = sum(plan["categories"][category] for category in CATEGORIES)
    tip = browser.tip_over(".hit.peak", 0, touch)
    browser.check_tip_inside()
    browser.expect(f"step {plan['peak_step']}:" in tip, f"peak step, tip: {tip!r}")
    browser.expect(f"({grouped(peak)} bytes)" in tip, f"peak bytes, tip: {tip!r}")
    for category in CATEGORIES:
        number = plan["categories"][category]
        browser.expect(f"{category} " in tip and grouped(number) in tip,
                       f"{category} at the peak, tip: {tip!r}")
    # The rectangle of the largest value is found by its tip.
    largest = max(plan["holdings"], key=lambda held: held["bytes"])
    count = browser.js("return [...document.querySelectorAll('.held')].filter("
                       "(e) => e.getBoundingClientRect().width > 0).length")
    found = False
    for index in range(count):
        tip = browser.tip_over(".held", index, touch)
        browser.check_tip_inside()
        browser.expect(tip, f"no tip over rectangle {index} of the map")
        found = found or (tip.startswith(largest["name"] + "\n") and
                          grouped(largest["bytes"]) in tip and largest["layer"] in tip and
                          largest["shape"] in tip and
                          f"offset {grouped(largest['offset'])}" in tip)
        if found or index > 80:
            break
    browser.expect(found, f"nothing on the map says {largest['name']}; last tip: {tip!r}")


def check_keys(browser, plan):
    browser.js("""
        const plot = [...document.querySelectorAll('.hit.peak')].find(
            (e) => e.getBoundingClientRect().width > 0).closest('svg');
        plot.scrollIntoView({block: 'center'}); plot.focus();""")
    browser.driver.execute_async_script("setTimeout(arguments[0], 60)")
    for key, step in (("ArrowRight", 1), ("ArrowLeft", 0)):
        for kind in ("keyDown", "keyUp"):
            browser.driver.execute_cdp_cmd("Input.dispatchKeyEvent",
                                           {"type": kind, "key": key, "code": key})
        expected = f"step {plan['peak_step'] + step}:"
        browser.expect(expected in browser.tip(), f"{key}: tip {browser.tip()!r}, not {expected}")
    for kind in ("keyDown", "keyUp"):
        browser.driver.execute_cdp_cmd("Input.dispatchKeyEvent",
                                       {"type": kind, "key": "Escape", "code": "Escape"})
    browser.expect(browser.tip() == "", "Escape leaves the tip")


def check_comparison(browser, page, runs):
    summaries = [json.loads((run / "summary.json").read_text()) for run in runs]
    for window in WINDOWS:
        for scheme in ("light", "dark"):
            browser.open(page, window, scheme)
            text = browser.js("return document.body.innerText")
            for summary in summaries:
                browser.expect(grouped(summary["measured_peak_bytes"]) in text, "a peak is missing")
            tip = browser.tip_over(".hit", 0, window == "phone")
            browser.expect(grouped(summaries[0]["arena_bytes"]) in tip, f"arena, tip: {tip!r}")


def make_run(thimble, out, batch, *options):
    subprocess.run([thimble, "train", "--model", "wrn-10-1", "--data", "shapes:60,20", "--batch",
                    batch, "--epochs", "3", "--log-every", "1", "--out", out, *options], check=True,
                   capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("thimble")
    parser.add_argument("--runs", nargs="*", default=[], type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    browser = Browser(arguments.screenshots)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        runs = [folder / "batch10", folder / "batch7"]
        make_run(arguments.thimble, runs[0], "10", "--validation", "10")
        make_run(arguments.thimble, runs[1], "7", "--schedule", "cosine")
        for run in runs:
            check_report(browser, run / "report.html", run)
        for run in arguments.runs:
            page = folder / f"{run.name}.html"
            subprocess.run([arguments.thimble, "report", run, "--out", page, "--plots",
                            folder / "plots"], check=True, capture_output=True)
            check_report(browser, page, run)
        page = folder / "comparison.html"
        subprocess.run([arguments.thimble, "report", *runs, *arguments.runs, "--out", page],
                       check=True, capture_output=True)
        check_comparison(browser, page, runs)
    browser.driver.quit()
    for fault in browser.faults:
        print(fault)
    print(f"{len(browser.faults)} faults")
    return 1 if browser.faults else 0


if __name__ == "__main__":
    sys.exit(main())
