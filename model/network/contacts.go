package network

// ContactLoss is the loss k·N of a contact that carries N, taken from the body that pushes in
// one direction of the motion.
type ContactLoss struct {
	Name    string
	At      Pos
	Rel     Row
	Contact int // friction element
	Own     int // signal of the loss
	K       float64
}

// GearLoss is the friction of a lossy gear, with what its law needs from the whole plant.
type GearLoss struct {
	Name          string
	At            Pos
	Friction, Tie int
	Eta1, Eta2    float64 // least efficiencies
}
