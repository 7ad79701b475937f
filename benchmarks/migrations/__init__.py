"""How plans take over from plans: experiments on what the literature proposes and we do not do."""
