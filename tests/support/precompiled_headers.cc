// Empty source for the precompiled headers of all tests.
