"""What a killed `pulumi up` leaves behind: jobs are labelled, recorded before submission, found again and removed."""
