"""The steps that write to pods: releases, fences, nominations, deletions."""
