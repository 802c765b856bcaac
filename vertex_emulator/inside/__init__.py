"""What a job's containers find of Google: who they are, tokens, and the services that the emulator has."""
