#!/usr/bin/env python3
"""The coefficients in kernels/simd/sigmoids.hpp, by interpolation at Chebyshev nodes. float: c of degree 6 in

  Phi(-a) = c(a - i/2),   |a - i/2| <= 1/4,   a >= 0,   i = 0 ... 14

the lowest power first, with an error of 1e-9. double: q of degree 26 in

  e^(z^2) erfc(z) = t q(u),   t = 1/(1 + 0.5 z),   u = 2t - 1 in [-1, 1]

Near zero, g of degree 15 in

  erf(sqrt(2) b) = b + b g(b^2 - 151/256),   b in [-1, 1]

and of degree 8 (float) and 17 in

  tanh(sqrt(2/pi) (x + 0.044715 x^3)) = b + b g(b^2 - 230/256),   x = 2 b

expanded around the centers, near which the coefficients are so near to floats that rounding them costs 5e-10. Prints the rest
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


def near(v):
    """g of v = 2 b^2 - 1, from the series of erf."""
    z2 = v + 1
    total = term = 2 * (2 / PI).sqrt()  # erf(z) = 2/sqrt(pi) sum of (-1)^n z^(2n+1) / (n! (2n+1)), z = sqrt(2) b
    n = 0
    while abs(term) > Decimal("1e-70"):
        n += 1
        term *= -z2 / n
        total += term / (2 * n + 1)
    return total - 1


def near_tanh(v):
    """g of v = 2 b^2 - 1, for the tanh of GELU's approximation."""
    b = max((v + 1) / 2, Decimal("1e-40")).sqrt()
    x = 2 * b
    decay = (-2 * (2 / PI).sqrt() * (x + Decimal("0.044715") * x ** 3)).exp()
    return (1 - decay) / (1 + decay) / b - 1


def interpolate(function, degree):
    count = degree + 1
    angles = [PI * (2 * k + 1) / (2 * count) for k in range(count)]
    values = [function(cosine(angle)) for angle in angles]
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


def expand(powers, by):
    """p(u + by) in powers of u."""
    low = powers[::-1]
    for i in range(len(low)):
        for j in range(len(low) - 2, i - 1, -1):
            low[j] += low[j + 1] * by
    return low[::-1]


def normal_tail(a):
    """Phi(-a)."""
    complement = scaled_complement(abs(a) / Decimal(2).sqrt()) * (-a * a / 2).exp() / 2
    return complement if a >= 0 else 1 - complement


def tail_row(i):
    low, high = Decimal(0 if i == 0 else -1) / 4, ONE / 4
    middle, half = (high + low) / 2, (high - low) / 2
    powers = interpolate(lambda u: normal_tail(Decimal(i) / 2 + middle + half * u), 6)
    return expand([c / half ** (6 - k) for k, c in enumerate(powers)], -middle)[::-1]


for i in range(15):
    print("{" + ", ".join(f"{value:.9e}f" for value in tail_row(i)) + "},")
print("double:", ", ".join(f"{value:.16e}" for value in interpolate(quotient, 26)))
for function, center, name, digits, degree in ((near, Decimal(151) / 256, "double", 17, 15),
                                               (near_tanh, Decimal(230) / 256, "float", 9, 8),
                                               (near_tanh, Decimal(230) / 256, "double", 17, 17)):
    powers = expand([c * 2 ** (degree - i) for i, c in enumerate(interpolate(function, degree))], center - ONE / 2)
    print(name, function.__name__ + ":", ", ".join(f"{value:.{digits}e}" for value in powers))
