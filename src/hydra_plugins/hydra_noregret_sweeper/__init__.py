"""Plugin of Hydra: ``hydra/sweeper=noregret`` (extra ``hydra``). Hydra finds it by the name of its folder."""
