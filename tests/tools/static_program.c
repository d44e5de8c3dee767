/* A statically linked program: the launcher must refuse it. */
int main(void) { return 0; }
