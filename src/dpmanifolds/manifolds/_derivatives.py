"""What is put around a manifold's methods: derivatives in PyTorch and JAX, and checks of the arrays they are given.

Values come by one formula, derivatives by another that is smooth where the first is not.

The formulas that keep every digit (singular values, polar coordinates, iterations) have derivatives that are wrong or
NaN where eigenvalues repeat, points coincide or vectors vanish. A method marked with `differentiated_by` returns their
values; forward and reverse mode, of any order, see its smooth twin instead, which is the same map of the manifold.
Away from the manifold the two may differ, so that the part of a gradient that is normal to it means nothing.
On other libraries the mark does nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from array_api_compat import device as device_of
from array_api_compat import is_jax_array, is_torch_array

from dpmanifolds._arrays import Array, holds_complex, is_numpy, like, namespace
from dpmanifolds.errors import ArgumentError

if TYPE_CHECKING:
    from dpmanifolds.manifolds.base import Manifold

Method = TypeVar("Method", bound=Callable[..., Any])
_OF_REAL_NUMBERS = (
    "exp",
    "log",
    "log_coordinates",
    "inner",
    "norm",
    "dist",
    "squared_dist",
    "geodesic",
    "transport",
    "to_coordinates",
    "from_coordinates",
    "log_volume_density",
    "project",
    "project_tangent",
)


def differentiated_by(twin: str, *ranks: int) -> Callable[[Method], Method]:
    """Mark a method of arrays whose derivatives are those of the method called `twin`.

    Its arguments are points or tangent vectors (..., *point_shape) unless `ranks` says how many axes each one has.
    """

    def mark(method: Method) -> Method:
        bind = inspect.signature(method).bind

        @functools.wraps(method)
        def marked(self: Any, *arrays: Array, **named: Array) -> Array:
            if named:
                arrays = bind(self, *arrays, **named).args[1:]
            if is_numpy(arrays[0]):
                return method(self, *arrays)
            arrays = tuple(like(array, arrays[0]) if isinstance(array, (int, float)) else array for array in arrays)
            own = ranks or (len(self.point_shape),) * len(arrays)
            return call_smoothly(partial(method, self), getattr(self, twin), own, *arrays)

        return marked  # type: ignore[return-value]

    return mark


def call_smoothly(
    value: Callable[..., Array], twin: Callable[..., Array], ranks: Sequence[int], *arrays: Array
) -> Array:
    """value(*arrays), differentiated as twin(*arrays); `ranks` are the axes of each array without the leading ones.

    A twin calls nothing that has a twin itself, but on `frozen` arrays: PyTorch's forward mode does not nest them.
    """
    if any(map(is_torch_array, arrays)):
        return _torch_rules().Twin.apply(value, twin, tuple(ranks), *arrays)
    if any(map(is_jax_array, arrays)):
        return _jax_call(value, twin, *arrays)
    return value(*arrays)


def frozen(array: Array) -> Array:
    """`array` as a constant, for derivatives."""
    if is_torch_array(array):
        return array.detach()
    if is_jax_array(array):
        import jax

        return jax.lax.stop_gradient(array)
    return array


def matrix_exponential(matrix: Array) -> Array:
    """exp of any square matrices by scaling and squaring, smooth everywhere; PyTorch and JAX."""
    if is_torch_array(matrix):
        import torch

        return torch.linalg.matrix_exp(matrix)
    import jax

    return jax.scipy.linalg.expm(matrix)


def multilinear(value: Callable[..., Array], matrix: Array, *directions: Array) -> Array:
    """Dⁿf(A)[V₁,…,V_n] = value(A, V₁, …, V_n) for a function f of symmetric matrices, with derivatives of every order.

    They are values of the same kind, Dⁿ⁺¹f(A)[V₁,…,V_n,dA] + Σᵢ Dⁿf(A)[…,dVᵢ,…]; and since ⟨G, Dⁿf(A)[V₁,…,V_n]⟩ is
    symmetric in G and all Vᵢ (it is a derivative of tr F(A), F' = f) those of reverse mode are as well.
    """
    if is_torch_array(matrix):
        return _torch_rules().Multilinear.apply(value, matrix, *directions)
    if is_jax_array(matrix):
        return _jax_multilinear().bind(matrix, *directions, value=value)
    return value(matrix, *directions)


def _replaced(directions: Sequence[Any], at: int, other: Any) -> tuple[Any, ...]:
    return (*directions[:at], other, *directions[at + 1 :])


def _jax_call(value: Callable[..., Array], twin: Callable[..., Array], *arrays: Array) -> Array:
    import jax

    rule = jax.custom_jvp(lambda *primals: value(*map(jax.numpy.asarray, primals)))
    rule.defjvp(lambda primals, tangents: (rule(*primals), jax.jvp(twin, primals, tangents)[1]))
    return rule(*arrays)


@cache
def _jax_multilinear() -> Any:
    """A primitive, since the rules of a custom_jvp are forgotten where it is applied to a tangent."""
    import jax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    form = Primitive("symmetric_multilinear_form")

    def apply(*arrays: Any, value: Any) -> Any:
        return value(*map(jax.numpy.asarray, arrays))

    def shape(*arrays: Any, value: Any) -> Any:
        leading = jax.numpy.broadcast_shapes(*(array.shape for array in arrays))
        return jax.core.ShapedArray(leading, arrays[0].dtype)

    def differentiate(arrays: Any, tangents: Any, *, value: Any) -> Any:
        found, parts = form.bind(*arrays, value=value), []
        for at, tangent in enumerate(tangents):
            if not isinstance(tangent, ad.Zero):
                changed = _replaced(arrays, at, tangent) if at else (*arrays, tangent)
                parts.append(form.bind(*changed, value=value))
        return found, sum(parts[1:], parts[0])

    def transpose(cotangent: Any, *arrays: Any, value: Any) -> Any:
        """Linear in one direction alone; where that was broadcast its cotangents are summed."""
        at = next(i for i, array in enumerate(arrays) if ad.is_undefined_primal(array))
        found = form.bind(*_replaced(arrays, at, cotangent), value=value)
        own = arrays[at].aval.shape
        found = found.sum(axis=tuple(range(found.ndim - len(own))))
        spread = tuple(i for i, size in enumerate(own) if size != found.shape[i])
        return _replaced([None] * len(arrays), at, found.sum(axis=spread, keepdims=True))

    def batch(arrays: Any, axes: Any, *, value: Any) -> Any:
        return form.bind(*_batch_first(axes, arrays, (2,) * len(arrays), jax.numpy.moveaxis), value=value), 0

    form.def_impl(apply)
    form.def_abstract_eval(shape)
    ad.primitive_jvps[form] = differentiate
    ad.primitive_transposes[form] = transpose
    batching.primitive_batchers[form] = batch
    mlir.register_lowering(form, mlir.lower_fun(apply, multiple_results=False))
    return form


def _batch_first(axes: Any, arrays: Any, ranks: Sequence[int], moveaxis: Callable[..., Array]) -> list[Array]:
    """Arrays of a vmap with its axis in front of all leading axes, to broadcast as those of each record do."""
    moved = [array if axis is None else moveaxis(array, axis, 0) for axis, array in zip(axes, arrays, strict=True)]
    own = [array.ndim - (axis is not None) - rank for axis, array, rank in zip(axes, moved, ranks, strict=True)]
    most = max(own)
    return [
        array if axis is None else array.reshape(array.shape[0], *(1,) * (most - lead), *array.shape[1:])
        for axis, array, lead in zip(axes, moved, own, strict=True)
    ]


@cache
def _torch_rules() -> Any:
    """The two rules as autograd functions: they serve backward, torch.func and forward mode."""
    import torch

    class Rules:
        class Twin(torch.autograd.Function):  # type: ignore[misc, name-defined, unused-ignore]
            @staticmethod
            def forward(value: Any, twin: Any, ranks: Any, *arrays: Any) -> Any:
                return value(*arrays)

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                _, ctx.twin, ctx.ranks, *arrays = inputs
                ctx.save_for_backward(*arrays)
                ctx.save_for_forward(*arrays)

            @staticmethod
            def backward(ctx: Any, gradient: Any) -> Any:
                arrays, wanted = ctx.saved_tensors, [i for i, need in enumerate(ctx.needs_input_grad[3:]) if need]

                def of_wanted(*changing: Any) -> Any:
                    own = dict(zip(wanted, changing, strict=True))
                    return ctx.twin(*(own.get(i, array) for i, array in enumerate(arrays)))

                _, pull = torch.func.vjp(of_wanted, *(arrays[i] for i in wanted))
                found = dict(zip(wanted, pull(gradient), strict=True))
                return (None, None, None, *(found.get(i) for i in range(len(arrays))))

            @staticmethod
            def jvp(ctx: Any, _value: Any, _twin: Any, _ranks: Any, *tangents: Any) -> Any:
                arrays = ctx.saved_tensors
                known = tuple(
                    torch.zeros_like(array) if tangent is None else tangent
                    for array, tangent in zip(arrays, tangents, strict=True)
                )
                # the transpose of the transpose: forward mode does not nest outside of torch.func
                value, pull = torch.func.vjp(ctx.twin, *arrays)
                _, push = torch.func.vjp(pull, torch.zeros_like(value))
                return push(known)[0]

            @staticmethod
            def vmap(info: Any, in_dims: Any, value: Any, twin: Any, ranks: Any, *arrays: Any) -> Any:
                return Rules.Twin.apply(value, twin, ranks, *_batch_first(in_dims[3:], arrays, ranks, torch.movedim)), 0

        class Multilinear(torch.autograd.Function):  # type: ignore[misc, name-defined, unused-ignore]
            @staticmethod
            def forward(value: Any, *arrays: Any) -> Any:
                return value(*arrays)

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                ctx.value, *arrays = inputs
                ctx.save_for_backward(*arrays)
                ctx.save_for_forward(*arrays)

            @staticmethod
            def backward(ctx: Any, gradient: Any) -> Any:
                matrix, *directions = ctx.saved_tensors
                found: list[Any] = [None] * (2 + len(directions))
                if ctx.needs_input_grad[1]:
                    found[1] = multilinear(ctx.value, matrix, *directions, gradient)
                for at in range(len(directions)):
                    if ctx.needs_input_grad[at + 2]:
                        found[at + 2] = multilinear(ctx.value, matrix, *_replaced(directions, at, gradient))
                return tuple(found)

            @staticmethod
            def jvp(ctx: Any, _value: Any, change: Any, *changes: Any) -> Any:
                matrix, *directions = ctx.saved_tensors
                parts = [] if change is None else [multilinear(ctx.value, matrix, *directions, change)]
                for at, tangent in enumerate(changes):
                    if tangent is not None:
                        parts.append(multilinear(ctx.value, matrix, *_replaced(directions, at, tangent)))
                return sum(parts[1:], parts[0])

            @staticmethod
            def vmap(info: Any, in_dims: Any, value: Any, *arrays: Any) -> Any:
                moved = _batch_first(in_dims[1:], arrays, (2,) * len(arrays), torch.movedim)
                return Rules.Multilinear.apply(value, *moved), 0

    return Rules


def guard_methods(cls: type[Any]) -> None:
    """Put the checks around the methods that a class defines itself."""
    for name in _OF_REAL_NUMBERS:
        if name in cls.__dict__:
            setattr(cls, name, _refuse_complex(cls.__dict__[name]))
    if "belongs" in cls.__dict__:
        cls.belongs = _false_elsewhere(cls.__dict__["belongs"])


def _refuse_complex(method: Callable[..., Array]) -> Callable[..., Array]:
    """A method that raises for complex arrays on a space of real ones, where imaginary parts would be dropped."""

    @functools.wraps(method)
    def checked(self: Manifold, *arrays: Array, **named: Array) -> Array:
        if not self.is_complex and any(map(holds_complex, (*arrays, *named.values()))):
            raise ArgumentError(
                f"points and vectors of {self!r} are real numbers; got complex ones. Take their real part first."
            )
        return method(self, *arrays, **named)

    return checked


def _false_elsewhere(method: Callable[..., Array]) -> Callable[..., Array]:
    """`belongs`, with False for arrays of another shape or of complex numbers instead of real ones."""

    @functools.wraps(method)
    def checked(self: Manifold, point: Array, tolerance: float | None = None) -> Array:
        if not self.point_shape:
            return method(self, point, tolerance)
        shape, rank = tuple(point.shape), len(self.point_shape)
        if shape[max(len(shape) - rank, 0) :] == self.point_shape and (self.is_complex or not holds_complex(point)):
            return method(self, point, tolerance)
        xp = namespace(point)
        return xp.zeros(shape[: max(len(shape) - rank, 0)], dtype=xp.bool, device=device_of(point))

    return checked
