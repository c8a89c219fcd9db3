"""Says who asks the page, with which rights it is answered, and what is refused unasked."""
