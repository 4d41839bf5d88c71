from hypothesis import settings

# A slow machine is no reason to fail.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
