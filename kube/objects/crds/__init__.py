"""CustomResourceDefinitions: generates them, and finds what served ones lack."""
