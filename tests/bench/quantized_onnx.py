"""A file of ONNX with its products in integers, quantized during the call, as ONNX Runtime's own quantize_dynamic writes it.

Each product with a constant matrix becomes DynamicQuantizeLinear of the input (unsigned, one scale for the tensor),
MatMulInteger with signed integers of the constant (one scale for each output), and a product with both scales. Products of
two activations stay floats.
"""
import numpy as np
import onnx
from onnx import helper, numpy_helper


def quantize(path, to):
    """Returns the number of products."""
    model = onnx.load(path)
    graph = model.graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    nodes, added, count = [], [], 0
    for node in graph.node:
        transposed = node.op_type == "Gemm" and any(one.name == "transB" and one.i for one in node.attribute)
        weight = constants.get(node.input[1]) if node.op_type in ("MatMul", "Gemm") else None
        if weight is None or weight.ndim != 2:
            nodes.append(node)
            continue
        weight = weight.T if transposed else weight
        scales = np.abs(weight).max(axis=0) / 127
        integers = np.rint(weight / np.where(scales > 0, scales, 1)).astype(np.int8)
        name = f"integers_{count}"
        count += 1
        added += [numpy_helper.from_array(integers, f"{name}.weight"),
                  numpy_helper.from_array(scales.astype(np.float32), f"{name}.scales"),
                  numpy_helper.from_array(np.zeros((), np.int8), f"{name}.zero")]
        product = f"{name}.product" if len(node.input) > 2 else node.output[0]
        nodes += [
            helper.make_node("DynamicQuantizeLinear", [node.input[0]], [f"{name}.x", f"{name}.x_scale", f"{name}.x_zero"]),
            helper.make_node("MatMulInteger", [f"{name}.x", f"{name}.weight", f"{name}.x_zero", f"{name}.zero"], [f"{name}.sums"]),
            helper.make_node("Cast", [f"{name}.sums"], [f"{name}.floats"], to=onnx.TensorProto.FLOAT),
            helper.make_node("Mul", [f"{name}.x_scale", f"{name}.scales"], [f"{name}.both"]),
            helper.make_node("Mul", [f"{name}.floats", f"{name}.both"], [product])]
        if len(node.input) > 2:
            nodes.append(helper.make_node("Add", [product, node.input[2]], [node.output[0]]))
    del graph.node[:]
    graph.node.extend(nodes)
    read = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept + added)
    onnx.checker.check_model(model)
    onnx.save(model, to)
    return count
