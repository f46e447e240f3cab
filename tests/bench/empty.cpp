// A firmware that does nothing: what it takes is the port's.
int main() { return 0; }
