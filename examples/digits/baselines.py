#!/usr/bin/env python3
"""Accuracy of simpler models on the same test images: trained on the first 1,437 of 1,797, tested on the other 360.

usage: baselines.py      needs scikit-learn (Debian: python3-sklearn)
"""
TEST = 360


def main():
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier

    digits = load_digits()
    images, labels = digits.data / 16, digits.target
    train_x, train_y, test_x, test_y = images[:-TEST], labels[:-TEST], images[-TEST:], labels[-TEST:]
    models = {
        "logistic regression": LogisticRegression(max_iter=5000),
        "MLP, 32 hidden units": MLPClassifier((32,), max_iter=3000, random_state=1),
        "nearest neighbor": KNeighborsClassifier(1),
    }
    for name, model in models.items():
        model.fit(train_x, train_y)
        print(f"{name}: {model.score(test_x, test_y):.4f}")


if __name__ == "__main__":
    main()
