"""Chromium for tests, and its screen sizes."""

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 800}
PATIENCE = 120_000  # milliseconds; only a browser that hangs is waited for so long
