namespace {
int left = 1;
[[gnu::destructor]] void leave() { left = 0; }
}  // namespace
int main() { return left - 1; }
