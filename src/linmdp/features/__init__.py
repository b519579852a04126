"""Feature maps: phi(s, a) in R^d."""

from linmdp.features.base import CheckedFeatures, FeatureMap, check_phi
from linmdp.features.basis import BlockFeatures, Fourier, RandomFourier, Scaling
from linmdp.features.bilinear import BilinearFeatures
from linmdp.features.tabular import TableFeatures, one_hot
from linmdp.features.unit import HashedFeatures, UnitFeatures

__all__ = [
    "BilinearFeatures",
    "BlockFeatures",
    "CheckedFeatures",
    "FeatureMap",
    "Fourier",
    "HashedFeatures",
    "RandomFourier",
    "Scaling",
    "TableFeatures",
    "UnitFeatures",
    "check_phi",
    "one_hot",
]
