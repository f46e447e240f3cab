"""Takes of users, as a file for `python3 -m attune_torch fit --data`."""
import torch

from . import tensors


def save_takes(path, x, y=None, *, user=None, length=None, y_test=None):
    """Writes takes: `x` has one in each row, as the exported model takes it; `y` the class of each, -1 without a label. By option, `user` says who gave
    it, `length` how many of its tokens are in use, and `y_test` its class for tests, -1 where nobody knows it. All may be tensors, NumPy arrays or lists."""
    x = torch.as_tensor(x)
    takes = {"x": x.float() if x.is_floating_point() else x.to(torch.int64)}
    for name, numbers in (("y", y), ("user", user), ("length", length), ("y_test", y_test)):
        if numbers is None:
            continue
        numbers = torch.as_tensor(numbers)
        if numbers.is_floating_point() or numbers.numel() != len(x):
            raise ValueError(f"{name} is to have a whole number for each of the {len(x)} takes of x")
        takes[name] = numbers.reshape(-1).to(torch.int64)
    if "y" not in takes and "y_test" not in takes:
        raise ValueError("give y, the class of each take, or y_test, the classes to test with")
    tensors.write(path, takes)
