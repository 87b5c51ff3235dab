"""How the secrets of OAuth clients are hashed."""

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class RandomSecretHasher(PBKDF2PasswordHasher):
    """For secrets we make ourselves: nobody can guess 128 random characters, so slowness would only cost us."""

    algorithm = "pbkdf2_random"
    iterations = 1
