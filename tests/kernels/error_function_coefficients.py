#!/usr/bin/env python3
"""The coefficients in kernels/simd/sigmoids.hpp. float: r of degree 7 in

  erfc(sqrt(2) b) = (1 + b r(b))^8,   b in [0, 4.25]

where b erfc(sqrt(2) b) has the smallest largest error, as has erfc / 2 below b = 1/2 (Lawson's algorithm: least squares,
each point weighted again by its error). Beyond 6 standard deviations, where erfc is smaller than the error, roots count as
if their derivative were that of a number that is not. double: q of degree 26 in

  e^(z^2) erfc(z) = t q(u),   t = 1/(1 + 0.5 z),   u = 2t - 1 in [-1, 1]

which interpolates the quotient at the Chebyshev nodes of u, then is expanded in powers of u. Near zero, g of degree 8 and 15
in

  erf(sqrt(2) b) = b + b g(b^2 - 151/256),   b in [-1, 1]

interpolated in the same way, and of degree 8 and 17 in

  tanh(sqrt(2/pi) (x + 0.044715 x^3)) = b + b g(b^2 - 230/256),   x = 2 b

Around these centers the coefficients are so near to floats that rounding them costs 5e-10. Prints all, the highest power
first, and the root's error.
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


def solve(matrix, right):
    """Gauss and Jordan, with pivots."""
    rows = [row + [value] for row, value in zip(matrix, right)]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(len(rows)):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i])]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def minimax_root(terms, last, count=120, turns=60):
    points = [last / 2 * (1 - cosine(PI * (2 * k + 1) / (2 * count))) for k in range(count)]
    roots = [(scaled_complement(b * Decimal(2).sqrt()) * (-2 * b * b).exp()) ** (ONE / 8) for b in points]
    slopes = [max(8 * root ** 7 * max(b, ONE / 2), Decimal("5e-7")) for b, root in zip(points, roots)]
    weights = [ONE / count] * count
    powers = [[b ** (k + 1) for k in range(terms)] for b in points]
    for _ in range(turns):
        scales = [weight * slope * slope for weight, slope in zip(weights, slopes)]
        matrix = [[sum(s * p[i] * p[j] for s, p in zip(scales, powers)) for j in range(terms)] for i in range(terms)]
        right = [sum(s * p[i] * (root - 1) for s, p, root in zip(scales, powers, roots)) for i in range(terms)]
        found = solve(matrix, right)
        errors = [abs(slope * (1 + sum(c * x for c, x in zip(found, p)) - root))
                  for slope, p, root in zip(slopes, powers, roots)]
        weights = [weight * error for weight, error in zip(weights, errors)]
        weights = [weight / sum(weights) for weight in weights]
    return found[::-1], max(errors)


root, error = minimax_root(8, Decimal("4.25"))
print("float:", ", ".join(f"{value:.8e}" for value in root), f"error {error:.1e}")
print("double:", ", ".join(f"{value:.16e}" for value in interpolate(quotient, 26)))
for function, center, double_degree in (near, Decimal(151) / 256, 15), (near_tanh, Decimal(230) / 256, 17):
    for name, digits, degree in ("float", 9, 8), ("double", 17, double_degree):
        powers = expand([c * 2 ** (degree - i) for i, c in enumerate(interpolate(function, degree))], center - ONE / 2)
        print(name, function.__name__ + ":", ", ".join(f"{value:.{digits}e}" for value in powers))
