package expr

// Names of fields in a FieldError, beside those that the dialects share.
const (
	// FieldExpression is the expression as a whole.
	FieldExpression = "expression"
	// FieldZone is a time zone within an expression.
	FieldZone = "time zone"
	// FieldPeriod is the duration of @every.
	FieldPeriod = "period"
)

// A FieldError says what is wrong with one field of an expression.
type FieldError struct {
	// Field is the field's name, such as "day of month".
	Field string
	// Value is what stands there.
	Value string
	// Reason is what is wrong with it.
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }
