"""Builds the ONNX graph of a BERT model, with the names that PyTorch's exporter gives, and runs it in onnxruntime."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def build(config, tensors, offset=0):
    """The graph from input_ids, attention_mask and position_ids to last_hidden_state, as bytes."""
    h, heads, layers = config.hidden_size, config.num_attention_heads, config.num_hidden_layers
    d, nodes, initializers, count = h // heads, [], [], 1000

    def constant(name, value):
        initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(op, inputs, name, **attributes):
        nodes.append(helper.make_node(op, inputs, [name + "_output_0"], name=name, **attributes))
        return name + "_output_0"

    for name, value in tensors.items():
        if not (name.endswith(".weight") and ("dense" in name or "self" in name)):
            constant(name, value.astype(np.float32))

    def linear(x, name):
        nonlocal count
        path = "/" + name.replace(".", "/").replace("layer/", "layer.")
        count += 1
        w = constant(f"onnx::MatMul_{count}", tensors[name + ".weight"].astype(np.float32).T)
        return node("Add", [name + ".bias", node("MatMul", [x, w], path + "/MatMul")], path + "/Add")

    def layer_norm(x, name):
        return node(
            "LayerNormalization",
            [x, name + ".weight", name + ".bias"],
            "/" + name.replace(".", "/"),
            axis=-1,
            epsilon=config.layer_norm_eps,
        )

    x = node("Gather", ["embeddings.word_embeddings.weight", "input_ids"], "/embeddings/word_embeddings/Gather")
    p = node(
        "Gather", ["embeddings.position_embeddings.weight", "position_ids"], "/embeddings/position_embeddings/Gather"
    )
    t = node(
        "Gather",
        ["embeddings.token_type_embeddings.weight", constant("zero", np.array(0, np.int64))],
        "/embeddings/token_type_embeddings/Gather",
    )
    x = layer_norm(
        node("Add", [node("Add", [x, t], "/embeddings/Add"), p], "/embeddings/Add_1"), "embeddings.LayerNorm"
    )
    split, join = constant("split", np.array([0, 0, heads, d], np.int64)), constant(
        "join", np.array([0, 0, h], np.int64)
    )
    mask = node("Unsqueeze", ["attention_mask", constant("axes", np.array([1, 2], np.int64))], "/mask/Unsqueeze")
    mask = node(
        "Sub",
        [constant("one", np.array(1, np.float32)), node("Cast", [mask], "/mask/Cast", to=TensorProto.FLOAT)],
        "/mask/Sub",
    )
    mask = node("Mul", [mask, constant("least", np.array(-3e38, np.float32))], "/mask/Mul")
    root = constant("root", np.array(d**0.5, np.float32))
    for i in range(layers):
        q = f"encoder.layer.{i}."
        path = f"/encoder/layer.{i}/attention/self"
        parts = [
            node("Reshape", [linear(x, q + "attention.self." + part), split], f"{path}/{part}/Reshape")
            for part in ("query", "key", "value")
        ]
        parts = [
            node("Transpose", [y], f"{path}/Transpose_{n}", perm=[0, 2, 3, 1] if n == 1 else [0, 2, 1, 3])
            for n, y in enumerate(parts)
        ]
        scores = node(
            "Add",
            [node("Div", [node("MatMul", parts[:2], path + "/MatMul"), root], path + "/Div"), mask],
            path + "/Add",
        )
        y = node("MatMul", [node("Softmax", [scores], path + "/Softmax", axis=-1), parts[2]], path + "/MatMul_1")
        y = node(
            "Reshape", [node("Transpose", [y], path + "/Transpose_3", perm=[0, 2, 1, 3]), join], path + "/Reshape_3"
        )
        y = linear(y, q + "attention.output.dense")
        x = layer_norm(
            node("Add", [y, x], f"/encoder/layer.{i}/attention/output/Add"), q + "attention.output.LayerNorm"
        )
        y = linear(x, q + "intermediate.dense")
        path = f"/encoder/layer.{i}/intermediate/act"
        e = node(
            "Erf",
            [node("Div", [y, constant(f"sqrt2.{i}", np.array(2**0.5, np.float32))], path + "/Div")],
            path + "/Erf",
        )
        e = node(
            "Mul", [y, node("Add", [e, constant(f"one.{i}", np.array(1, np.float32))], path + "/Add")], path + "/Mul"
        )
        y = linear(
            node("Mul", [e, constant(f"half.{i}", np.array(0.5, np.float32))], path + "/Mul_1"), q + "output.dense"
        )
        x = layer_norm(node("Add", [y, x], f"/encoder/layer.{i}/output/Add"), q + "output.LayerNorm")
    nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"], name="/Identity"))
    batch = ["batch", "sequence"]
    made = helper.make_model(
        helper.make_graph(
            nodes,
            "main_graph",
            [
                helper.make_tensor_value_info(n, TensorProto.INT64, batch)
                for n in ("input_ids", "attention_mask", "position_ids")
            ],
            [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, batch + [h])],
            initializers,
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.checker.check_model(made)
    return made.SerializeToString()


def session(model, threads=1):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run(model, rows, pooling, offset=0):
    """Unit vectors of rows of token ids, one by one."""
    s, out = session(model), []
    for ids in rows:
        n = len(ids)
        state = s.run(
            None,
            {
                "input_ids": np.array([ids], np.int64),
                "attention_mask": np.ones((1, n), np.int64),
                "position_ids": np.arange(offset, offset + n, dtype=np.int64)[None],
            },
        )[0][0].astype(np.float64)
        v = state.mean(0) if pooling == "mean" else state[0]
        out.append(v / np.linalg.norm(v))
    return np.array(out)


def dequantised(model, tensors):
    """The tensors as a quantised model holds them."""
    model = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
    values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}

    def value(name):
        scale, zero = values[name + "_scale"], values[name + "_zero_point"]
        return (values[name + "_quantized"].astype(np.float32) - np.float32(zero)) * np.float32(scale)

    made = {o: n for n in model.graph.node for o in n.output}
    out = {}
    for name, old in tensors.items():
        if name in values:
            out[name] = values[name]
        elif name + "_quantized" in values:
            out[name] = value(name)
        else:  # a matrix: found from its bias
            bias = name.removesuffix("weight") + "bias"
            add = next(n for n in model.graph.node if n.op_type == "Add" and bias in n.input)
            at = made[next(x for x in add.input if x != bias)]
            while at.op_type != "MatMulInteger":
                at = made[at.input[0]] if at.input[0] in made else made[at.input[1]]
            out[name] = value(at.input[1].removesuffix("_quantized")).T
        assert out[name].shape == old.shape, name
    return out
