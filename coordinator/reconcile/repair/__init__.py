"""The steps that mend a gang: lost slots, pods that KubeRay missed, refused releases."""
