"""Feature maps: phi(s, a) in R^d."""

from linmdp.features.base import CheckedFeatures, FeatureMap, check_phi
from linmdp.features.tabular import TableFeatures, one_hot

__all__ = ["CheckedFeatures", "FeatureMap", "TableFeatures", "check_phi", "one_hot"]
