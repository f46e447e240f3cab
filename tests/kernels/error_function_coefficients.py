#!/usr/bin/env python3
"""The coefficients in kernels/sigmoids.hpp of q(u), where

  e^(z^2) erfc(z) = t q(u),   t = 1/(1 + 0.5 z),   u = 2t - 1 in [-1, 1]

q interpolates the quotient at the Chebyshev nodes of u, then is expanded in powers of u. Prints float's and double's,
the highest power first.
"""
from decimal import Decimal, getcontext

getcontext().prec = 60
ONE = Decimal(1)


def pi():
    """Machin's formula."""
    def arctangent_of_inverse(n):
        total, power, k = Decimal(0), ONE / n, 1
        while power > Decimal("1e-70"):
            total += power / k if k % 4 == 1 else -power / k
            power, k = power / (n * n), k + 2
        return total
    return 16 * arctangent_of_inverse(5) - 4 * arctangent_of_inverse(239)


PI = pi()


def cosine(x):
    total = term = ONE
    k = 0
    while abs(term) > Decimal("1e-70"):
        k += 2
        term *= -x * x / (k * (k - 1))
        total += term
    return total


def scaled_complement(z):
    """e^(z^2) erfc(z): the series of erf below 3, the continued fraction of erfc above."""
    if z < 3:
        total = term = z
        n = 0
        while term > Decimal("1e-70"):  # erf(z) = 2/sqrt(pi) e^(-z^2) sum of 2^n z^(2n+1) / (2n+1)!!
            n += 1
            term *= 2 * z * z / (2 * n + 1)
            total += term
        return (z * z).exp() - 2 / PI.sqrt() * total
    fraction = z
    for n in range(400, 0, -1):
        fraction = z + Decimal(n) / 2 / fraction
    return 1 / (fraction * PI.sqrt())


def quotient(u):
    t = (u + 1) / 2
    return scaled_complement((1 / t - 1) / Decimal("0.5")) / t


def interpolate(degree):
    count = degree + 1
    angles = [PI * (2 * k + 1) / (2 * count) for k in range(count)]
    values = [quotient(cosine(angle)) for angle in angles]
    chebyshev = [2 * sum(v * cosine(j * a) for v, a in zip(values, angles)) / count for j in range(count)]
    chebyshev[0] /= 2
    powers = [Decimal(0)] * count
    previous, polynomial = [ONE], [Decimal(0), ONE]  # T_0, T_1
    for j, coefficient in enumerate(chebyshev):
        for i, value in enumerate(previous):
            powers[i] += coefficient * value
        following = [Decimal(0)] + [2 * value for value in polynomial]
        for i, value in enumerate(previous):
            following[i] -= value
        previous, polynomial = polynomial, following
    return powers[::-1]


for degree, digits in ((11, 9), (26, 17)):
    print(f"degree {degree}:", ", ".join(f"{value:.{digits - 1}e}" for value in interpolate(degree)))
