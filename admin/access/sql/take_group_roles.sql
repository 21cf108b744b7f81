-- Takes back all that groups gave, before they give anew. The user's row is locked.
DELETE FROM pelton.access_role WHERE user_id = $1 AND source = 'oidc'
