"""The program that creates and deletes the objects of AppWrappers, and writes their status.

It decides nothing about room. The coordinator decides, and writes the placement into the Gang of
the AppWrapper; that is the signal to create. All that talks to the API server is in `shell`, the
other modules are pure.
"""
