"""Feature maps: phi(s, a) in R^d."""

from linmdp.features.base import CheckedFeatures, FeatureMap, check_phi
from linmdp.features.basis import RBF, Fourier, RandomFourier, Tiles
from linmdp.features.bilinear import BilinearFeatures
from linmdp.features.blocks import BlockFeatures
from linmdp.features.onehot import OneHot
from linmdp.features.scaling import Scaling
from linmdp.features.tabular import TableFeatures, one_hot
from linmdp.features.unit import HashedFeatures, UnitFeatures

__all__ = [
    "RBF",
    "BilinearFeatures",
    "BlockFeatures",
    "CheckedFeatures",
    "FeatureMap",
    "Fourier",
    "HashedFeatures",
    "OneHot",
    "RandomFourier",
    "Scaling",
    "TableFeatures",
    "Tiles",
    "UnitFeatures",
    "check_phi",
    "one_hot",
]
