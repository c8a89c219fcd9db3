"""How does Muster look to somebody who has never seen it: three scenes on a real control plane."""
