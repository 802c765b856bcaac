"""Hostile clients and containers of an emulator, by dice, and the checks of what it answers meanwhile."""
