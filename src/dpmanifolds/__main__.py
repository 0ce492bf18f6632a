"""`python -m dpmanifolds` is the command line."""

from dpmanifolds.cli import main

if __name__ == "__main__":
    main()
