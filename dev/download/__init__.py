"""Makes the command `muster` as one file, and the manifest by which krew installs it."""
