"""Which pods of Ray get Muster's gate when they are created?"""
